// Search in a site that is opened from a folder: browsers start no Worker from file:, so a hidden frame takes its place.
(() => {
  if (location.protocol !== "file:") return;
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.deliver(this, data);
      const script = inner.document.createElement("script");
      script.src = url;
      this.ready = new Promise((resolve, reject) => {
        script.onload = () => resolve(inner);
        script.onerror = () => reject(new Error(`${url} cannot be loaded`));
      });
      inner.document.body.append(script);
      this.terminate = () => frame.remove();
    }

    postMessage(data) {
      this.ready.then((inner) => this.deliver(inner, data));
    }

    deliver(target, data) {
      const event = new MessageEvent("message", { data });
      target.dispatchEvent(event);
      target.onmessage?.(event);
    }
  };
})();
