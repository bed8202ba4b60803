"""The cluster's state for people: images in sections, differences, stories of what happened."""
