CREATE STREAM orders FROM TOPIC 'orders' WITH (retain = '1 day') RETAIN 2 DAYS
