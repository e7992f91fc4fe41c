/**
 * An address that does not respond to connections, as a dropped packet: its backlog is full, and its process accepts nothing until it is
 * released. A connection that has been opened since then is accepted when its first packet is repeated, a second after it was sent, so that
 * the address is as far as one of a second.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const PROGRAM = `
  const { createServer } = require('node:net');
  const { readSync } = require('node:fs');
  const [host, port] = process.argv.slice(1);
  const respond = (socket) => socket.on('error', () => socket.destroy()).once('data', () =>
    socket.end('HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\nfar'));
  const server = createServer(respond).listen({ host, port: Number(port), backlog: 1 }, () => {
    process.stdout.write(server.address().port + '\\n');
    setImmediate(() => readSync(0, Buffer.alloc(1)));
  });
`;

export interface BlackHole extends AsyncDisposable {
  readonly port: number;
  /** From now on connections are accepted. */
  release(): void;
}

/** @param port Default: a free one */
export async function startBlackHole(host: string, port = 0): Promise<BlackHole> {
  const child = spawn(process.execPath, ['-e', PROGRAM, host, String(port)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const address = { host, port: Number(line) };
  const fillers: Socket[] = [];
  do {
    fillers.push(connect(address).on('error', () => undefined));
    await sleep(100);
  } while (fillers.at(-1)?.connecting === false);
  for (const filler of fillers) if (filler.connecting) filler.destroy();
  return {
    port: address.port,
    release: () => void child.stdin.write('x'),
    [Symbol.asyncDispose]: async () => {
      for (const filler of fillers) filler.destroy();
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
