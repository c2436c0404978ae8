CREATE STREAM orders FROM TOPIC 'orders' WITH (delimiter = ';')
