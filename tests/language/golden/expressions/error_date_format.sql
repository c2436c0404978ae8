SELECT DATE_FORMAT(ts, '%Y-%m') FROM flights
