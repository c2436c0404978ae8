CREATE TABLE IF NOT EXISTS planes (tail STRING PRIMARY KEY, model STRING NOT NULL, seats INTEGER)
WITH (topic = 'fleet', partitions = 4) RETAIN 7 DAYS
