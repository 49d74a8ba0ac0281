"""bitfed in Flower: any recipe, the model that `bitfed run` gives."""
