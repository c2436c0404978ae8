SELECT * FROM flights WHERE dest LIKE ANY (SELECT carrier FROM flights)
