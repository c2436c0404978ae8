SELECT f.* FROM flights AS f
