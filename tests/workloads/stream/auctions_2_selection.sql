SELECT * FROM bid [NOW] WHERE item IN (1, 2, 4, 5, 7)
