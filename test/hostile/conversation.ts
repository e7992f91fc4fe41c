/** A client that sends bytes as they are, and waits until the other side has said or done what it is going to. */
import { openSocket } from '../support/raw-client.ts';

export interface Conversation {
  /** Everything received, latin1. */
  readonly received: string;
  /** `silent`: neither a byte nor an end came, although the client had closed its own side. */
  readonly end: 'closed' | 'responded' | 'silent';
}

export interface ConversationTerms {
  /** The client closes its sending side behind its last byte. */
  readonly sendsFin: boolean;
  /** Without a further byte for this long a response counts as whole, milliseconds. */
  readonly quietMs: number;
  /** How long the first byte may take before the client closes its side, milliseconds. Default: ten times `quietMs`. */
  readonly firstByteMs?: number | undefined;
  /** The bytes from here on are sent in a packet of their own, later. Default: all at once. */
  readonly splitAt?: number | undefined;
}

/** Long enough for the first packet to have been read and checked. */
const SPLIT_MS = 5;

/** How long the other side may take to close after the client has. */
const CLOSING_MS = 5000;

/** Never rejects once connected; a reset is an end. */
export async function converse(url: string, bytes: Buffer, terms: ConversationTerms): Promise<Conversation> {
  const socket = await openSocket(url);
  let received = '';
  const end = await new Promise<Conversation['end']>((resolve) => {
    // A response that is not there yet is waited for longer: the client gives up on it by closing its side.
    const whenQuiet = (): void => {
      if (received !== '') {
        resolve('responded');
        return;
      }
      socket.end();
      clearTimeout(timer);
      timer = setTimeout(() => resolve('silent'), CLOSING_MS);
    };
    let timer = setTimeout(whenQuiet, terms.firstByteMs ?? 10 * terms.quietMs);
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      clearTimeout(timer);
      timer = setTimeout(whenQuiet, terms.quietMs);
    });
    socket.on('error', () => resolve('closed')).on('close', () => resolve('closed'));
    socket.once('end', () => resolve('closed'));
    const { splitAt = bytes.length } = terms;
    socket.write(bytes.subarray(0, splitAt));
    setTimeout(
      () => {
        if (socket.writable) socket.write(bytes.subarray(splitAt));
        if (terms.sendsFin) socket.end();
      },
      splitAt < bytes.length ? SPLIT_MS : 0,
    );
    socket.once('close', () => {
      clearTimeout(timer);
    });
  });
  // Without a reset, thousands of connections would stay behind in TIME_WAIT.
  if (end === 'responded') socket.resetAndDestroy();
  else socket.destroy();
  return { received, end };
}

/** The status codes of the final responses received. */
export function statusesOf({ received }: Conversation): number[] {
  return [...received.matchAll(/^HTTP\/1\.1 ([2-5]\d\d) /gm)].map(([, status]) => Number(status));
}
