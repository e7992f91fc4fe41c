/** http-proxy-3 as its own documentation has it: one target, a keep-alive agent, errors become 502. */
import { Agent, createServer } from 'node:http';
import { createProxyServer } from 'http-proxy-3';

const [port = '0', target = ''] = process.argv.slice(2);
const proxy = createProxyServer({ target, agent: new Agent({ keepAlive: true }) });
proxy.on('error', (_error, _request, response) => {
  if ('writeHead' in response && !response.headersSent) response.writeHead(502);
  response.end();
});
createServer((request, response) => {
  proxy.web(request, response);
}).listen(Number(port), '127.0.0.1');
