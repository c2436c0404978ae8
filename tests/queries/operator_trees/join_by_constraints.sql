SELECT o.id, f.v FROM o JOIN f ON f.k = o.id WHERE f.v > 0
