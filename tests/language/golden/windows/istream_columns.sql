SELECT IStream(dest, delay * 60 AS seconds) FROM flights [NOW]
