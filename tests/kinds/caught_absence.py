class Method:
    def process_weights_after_loading(self, layer):
        try:
            self.d
        except AttributeError:
            self.d = layer.weight.clone()  # error RB204
    def apply(self, layer, x):
        return self.d * 1
