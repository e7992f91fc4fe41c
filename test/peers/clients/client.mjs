// Calls of Node.js: fetch and node:http. Arguments and output: test/peers/client-stacks/client-program.ts.
import { createHash } from 'node:crypto';
import { createReadStream, openAsBlob, readFileSync, statSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { argv, env } from 'node:process';
import { pipeline } from 'node:stream/promises';

const [stack, base, folder, ...cells] = argv.slice(2);
const report = (line) => console.log(JSON.stringify(line));
const isUpload = (cell) => cell === 'post' || cell === 'up';

async function callFetch(cell) {
  const file = `${folder}/${cell}`;
  const headers = { 'content-type': 'application/json' };
  const body = cell === 'post' ? readFileSync(file) : cell === 'up' ? await openAsBlob(file) : undefined;
  const response = await fetch(`${base}/${cell}`, isUpload(cell) ? { method: 'POST', headers, body } : {});
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.body;
}

// The agent reads the proxy from the environment that it is given (Node.js 24.5).
const agent = new Agent({ keepAlive: true, proxyEnv: env });

async function callHttp(cell) {
  const file = `${folder}/${cell}`;
  const headers = isUpload(cell) ? { 'content-type': 'application/json', 'content-length': statSync(file).size } : {};
  const sent = request(`${base}/${cell}`, { agent, method: isUpload(cell) ? 'POST' : 'GET', headers });
  const response = new Promise((resolve, reject) => sent.once('response', resolve).once('error', reject));
  if (isUpload(cell)) await Promise.all([response, pipeline(createReadStream(file), sent)]);
  else sent.end();
  const received = await response;
  if (received.statusCode !== 200) throw new Error(`status ${received.statusCode}`);
  return received;
}

async function run(cell) {
  const hash = createHash('sha256');
  let bytes = 0;
  for (let call = 0; call < (cell === 'keep-alive' ? 5 : 1); call++) {
    for await (const chunk of stack === 'fetch' ? await callFetch(cell) : await callHttp(cell)) {
      if (cell === 'sse')
        for (const [, event] of new TextDecoder().decode(chunk).matchAll(/^data: (.*)$/gm)) report({ cell, event });
      bytes += chunk.length;
      hash.update(chunk);
    }
  }
  return { bytes, sha256: hash.digest('hex') };
}

for (const cell of cells) {
  try {
    report({ cell, ...(await run(cell)) });
  } catch (error) {
    report({ cell, error: [error.message, error.cause?.message].filter(Boolean).join(': ') });
  }
}
agent.destroy();
