terminate 'abc'
