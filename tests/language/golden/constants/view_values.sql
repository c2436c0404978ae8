CREATE VIEW names AS VALUES ('AA', 'American')
