SELECT * FROM flights, weather
