SELECT * FROM store1 WITH PREFERENCE Estimate.Count(itemno)
