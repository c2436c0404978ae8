CREATE STREAM s (a INTEGER) WITH (topik = 'x')
