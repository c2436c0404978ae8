SELECT * FROM store1 WITH PREFERENCE item1.Estimate.Count(itemno)
