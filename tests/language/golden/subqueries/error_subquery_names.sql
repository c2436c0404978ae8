SELECT * FROM (SELECT carrier, dest FROM flights) AS t(a)
