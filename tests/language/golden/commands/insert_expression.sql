INSERT INTO weather (dest) VALUES (UPPER('lax') || '!')
