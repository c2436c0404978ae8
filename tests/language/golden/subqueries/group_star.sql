SELECT * FROM (SELECT carrier, dest FROM flights) GROUP BY carrier, dest
