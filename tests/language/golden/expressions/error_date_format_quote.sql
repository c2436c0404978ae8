SELECT DATE_FORMAT(ts, '''unclosed') FROM flights
