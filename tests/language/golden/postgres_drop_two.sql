DROP STREAM flights, weather
