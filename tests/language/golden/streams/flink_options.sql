CREATE STREAM s (a INT) WITH ('connector' = 'kafka', 'topic' = 's')
