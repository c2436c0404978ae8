ISTREAM (flights)
