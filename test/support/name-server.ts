/**
 * A name server on loopback, and programs that ask it instead of the machine's: they run in a mount namespace with a resolv.conf of their
 * own, which needs root. Names that begin with `slow` get a response when the test says so.
 */
import { createSocket, type RemoteInfo } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const HEADER_BYTES = 12;
const TYPE_A = 1;

export interface NameServer extends AsyncDisposable {
  /** The names asked for, each once, in order. */
  readonly names: () => readonly string[];
  /** Responds to all that ask for a slow name, from now on. */
  respondToSlowNames(): void;
  /** Runs a program so that it asks this server: what comes before the program's own words. */
  readonly command: readonly [string, ...string[]];
}

/** @param host of 127.0.0.0/8, one that no other test uses */
export async function startNameServer(host: string): Promise<NameServer> {
  const names = new Set<string>();
  let isHolding = true;
  const held: (() => void)[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, type, questionEnd } = readQuestion(query);
    names.add(name);
    const send = (): void => respond(query.subarray(0, questionEnd), type, from);
    if (isHolding && name.startsWith('slow')) held.push(send);
    else send();
  });
  const respond = (question: Buffer, type: number, { port, address }: RemoteInfo): void => {
    // A name has the address 127.0.0.1, and none of another family.
    const record = Buffer.from('c00c000100010000000000047f000001', 'hex');
    const message = Buffer.concat(type === TYPE_A ? [question, record] : [question]);
    message.writeUInt16BE(0x8180, 2);
    message.writeUInt16BE(type === TYPE_A ? 1 : 0, 6);
    message.writeUInt32BE(0, 8);
    socket.send(message, port, address);
  };
  await new Promise<void>((resolve) => socket.bind(53, host, resolve));
  const folder = mkdtempSync(join(tmpdir(), 'name-server-'));
  const file = join(folder, 'resolv.conf');
  writeFileSync(file, `nameserver ${host}\noptions timeout:30 attempts:1\n`);
  return {
    names: () => [...names],
    respondToSlowNames: () => {
      isHolding = false;
      for (const send of held.splice(0)) send();
    },
    command: ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf && exec "$@"', file],
    [Symbol.asyncDispose]: async () => {
      await new Promise<void>((resolve) => socket.close(resolve));
      rmSync(folder, { recursive: true });
    },
  };
}

function readQuestion(query: Buffer): { readonly name: string; readonly type: number; readonly questionEnd: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), questionEnd: at + 5 };
}
