SELECT * FROM flights WHERE payload ? 'a'
