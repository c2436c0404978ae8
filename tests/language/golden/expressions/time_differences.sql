SELECT DATEDIFF(day, ts, ts) AS a, DATEDIFF(ts, day) AS b, TIMESTAMPDIFF(MONTH, ts, day) AS c, DATE_DIFF('week', ts, ts) AS d FROM flights
