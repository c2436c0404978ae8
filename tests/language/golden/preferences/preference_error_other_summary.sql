SELECT * FROM store1 WITH PREFERENCE items2.Estimate.Count(itemno)
