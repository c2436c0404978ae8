SELECT carrier, EXISTS (SELECT * FROM weather WHERE wind > 60) AS stormy FROM flights
