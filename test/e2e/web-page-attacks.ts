/** Everything that a web page can do to make a browser send a request, for the tests in which a page attacks the sidecar. */

/** What a page can do to a URL: JavaScript for `PAGE`, with `url` in it. */
export const ATTACKS: Readonly<Record<string, string>> = {
  'fetch GET': `fetch(url)`,
  'fetch no-cors GET': `fetch(url, { mode: 'no-cors' })`,
  'fetch no-cors GET without referrer': `fetch(url, { mode: 'no-cors', referrerPolicy: 'no-referrer' })`,
  'fetch no-cors POST text/plain': `fetch(url, { mode: 'no-cors', method: 'POST', body: '{"a":1}' })`,
  'fetch no-cors POST urlencoded': `fetch(url, { mode: 'no-cors', method: 'POST', body: new URLSearchParams('a=1') })`,
  'fetch no-cors POST multipart': `fetch(url, { mode: 'no-cors', method: 'POST', body: multipart() })`,
  'fetch no-cors POST blob without a type': `fetch(url, { mode: 'no-cors', method: 'POST', body: new Blob(['{}']) })`,
  'fetch POST text/plain': `fetch(url, { method: 'POST', body: '{}' })`,
  'fetch POST JSON (preflight)': `fetch(url, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })`,
  'fetch DELETE (preflight)': `fetch(url, { method: 'DELETE' })`,
  'fetch keepalive POST': `fetch(url, { mode: 'no-cors', method: 'POST', keepalive: true, body: 'x' })`,
  'XMLHttpRequest POST': `const x = new XMLHttpRequest(); x.open('POST', url); x.send('{}')`,
  'form GET': `form(url, 'GET', '')`,
  'form POST urlencoded': `form(url, 'POST', 'application/x-www-form-urlencoded')`,
  'form POST multipart': `form(url, 'POST', 'multipart/form-data')`,
  'form POST text/plain': `form(url, 'POST', 'text/plain')`,
  img: `new Image().src = url`,
  script: `add('script', { src: url })`,
  'module script': `add('script', { type: 'module', src: url })`,
  'import()': `import(url)`,
  'link stylesheet': `add('link', { rel: 'stylesheet', href: url })`,
  'link preload': `add('link', { rel: 'preload', as: 'image', href: url })`,
  'link prefetch': `add('link', { rel: 'prefetch', href: url })`,
  'style background': `document.body.style.backgroundImage = 'url(' + url + ')'`,
  'web font': `new FontFace('f', 'url(' + url + ')').load()`,
  video: `add('video', { src: url, preload: 'auto' })`,
  object: `add('object', { data: url, type: 'text/html' })`,
  iframe: `add('iframe', { src: url })`,
  'iframe, sandboxed': `add('iframe', { src: url, sandbox: '' })`,
  'fetch POST of a sandboxed iframe (Origin: null)': `add('iframe', { sandbox: 'allow-scripts',
    srcdoc: '<script>fetch("' + url + '", { mode: "no-cors", method: "POST", body: "{}" })</' + 'script>' })`,
  WebSocket: `new WebSocket(url.replace('http', 'ws'))`,
  EventSource: `new EventSource(url)`,
  sendBeacon: `navigator.sendBeacon(url, '{}')`,
  'img by way of a redirect': `new Image().src = redirect(url)`,
  'fetch no-cors POST by way of a redirect': `fetch(redirect(url), { mode: 'no-cors', method: 'POST', body: '{}' })`,
  'form POST by way of a redirect': `form(redirect(url), 'POST', 'text/plain')`,
  'window.open by way of a redirect': `window.open(redirect(url))`,
  'window.open': `window.open(url)`,
  'window.open without opener': `window.open(url, '_blank', 'noopener,noreferrer')`,
};

/** As above; each leaves the page, or would. */
export const NAVIGATIONS: Readonly<Record<string, string>> = {
  'a link, clicked': `add('a', { href: url }).click()`,
  'a link without referrer, clicked': `add('a', { href: url, referrerPolicy: 'no-referrer' }).click()`,
  location: `location.href = url`,
  'meta refresh': `add('meta', { httpEquiv: 'refresh', content: '0;url=' + url })`,
  'form GET that leaves the page': `form(url, 'GET', '', '_top')`,
  'form POST that leaves the page': `form(url, 'POST', 'text/plain', '_top')`,
};

/** The page of the attacker. `/redirect?to=` of its server must redirect. */
export const PAGE = `<!doctype html><title>attacker</title><body><script>
  const add = (tag, properties) => {
    const element = Object.assign(document.createElement(tag), properties);
    if (properties.sandbox !== undefined) element.setAttribute('sandbox', properties.sandbox);
    return document.body.appendChild(element);
  };
  const multipart = () => { const data = new FormData(); data.append('a', '1'); return data; };
  const redirect = (url) => '/redirect?to=' + encodeURIComponent(url);
  const form = (url, method, enctype, target) => {
    const frame = target === undefined ? add('iframe', { name: 'frame' + Math.random() }).name : target;
    const element = add('form', { method, enctype, action: url, target: frame });
    element.append(Object.assign(document.createElement('input'), { name: '{"a":"', value: '1"}' }));
    element.submit();
  };
</script>`;
