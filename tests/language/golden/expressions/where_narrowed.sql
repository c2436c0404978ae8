SELECT dest FROM flights WHERE flight > 2.5 AND distance <= 10.5 AND flight < 1e3 AND flight = 2.5 AND price >= 3
