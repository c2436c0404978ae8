SELECT DATE_ADD(ts, INTERVAL '5' DAY) AS a, DATE_SUB(day, 3) AS b, DATEADD(MONTH, 3, ts) AS c, TIMESTAMPADD(HOUR, flight, ts) AS d, DATE_ADD('year', 1, ts) AS e FROM flights
