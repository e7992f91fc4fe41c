/** fast-proxy over its own undici, the faster of its two ways. */
import { createServer } from 'node:http';
import fastProxy from 'fast-proxy';
import { AUTHORIZATION, CA, CONNECTIONS, PORT, UPSTREAM } from './terms.ts';

const { proxy } = fastProxy({
  base: UPSTREAM,
  undici: { connections: CONNECTIONS, pipelining: 1, connect: { ca: CA } },
});
createServer((request, response) => {
  proxy(request, response, request.url ?? '/', {
    rewriteRequestHeaders: (_request, headers) => ({ ...headers, authorization: AUTHORIZATION }),
  });
}).listen(PORT, '127.0.0.1');
