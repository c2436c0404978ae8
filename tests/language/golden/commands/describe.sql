DESCRIBE flights
