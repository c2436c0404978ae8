CREATE SUMMARY x ON store1 (itemno)
