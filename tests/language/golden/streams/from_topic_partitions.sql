CREATE STREAM orders FROM TOPIC 'orders' WITH (partitions = 4)
