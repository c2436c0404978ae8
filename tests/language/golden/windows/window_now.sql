SELECT * FROM flights [NOW]
