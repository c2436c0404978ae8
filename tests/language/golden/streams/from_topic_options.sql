CREATE TABLE IF NOT EXISTS "Orders" FROM TOPIC 'orders' WITH (timestamp = 'at', lateness = 5 SECONDS, format = 'CSV', delimiter = ';', idle_advances = TRUE) RETAIN 2 DAYS
