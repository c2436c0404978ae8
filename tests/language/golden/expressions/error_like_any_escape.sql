SELECT * FROM flights WHERE dest LIKE ANY ('a!%%', 'b%') ESCAPE '!'
