SELECT time_bucket('3 months', ts) AS a, date_bin('15 minutes', ts, TIMESTAMP '2020-01-01') AS b FROM flights
