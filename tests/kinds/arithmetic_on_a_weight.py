class Method:
    def process_weights_after_loading(self, layer):
        layer.derived = layer.weight * 2  # error RB101
        layer.neg = -layer.weight  # error RB101
        layer.sum = layer.weight + layer.weight  # error RB101
    def apply(self, layer, x):
        return layer.derived * layer.neg * layer.sum
