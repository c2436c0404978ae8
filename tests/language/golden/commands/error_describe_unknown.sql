DESCRIBE flight
