/**
 * Decides which requests with an `Upgrade` field leave HTTP/1.1: a GET for `websocket` alone. Any other is served as if it had no such
 * field (RFC 9110 §7.8). node:http drops what follows an ignored upgrade in its packet, and reports no invalid input: here the rest is parsed,
 * and the error reported.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** The used parts of node:http's parser. Undocumented: test/peers/ignored-upgrades.test.ts tries them on the supported versions. */
interface Parser {
  /** Parses up to the end of an upgrade. Returns the number of bytes parsed, or what is wrong with them. */
  execute: (this: Parser, bytes: Buffer) => number | Error;
  /** Called after each read from the connection with what `execute` would have returned. */
  [ON_EXECUTE]: (this: Parser, parsed: number | Error) => void;
  readonly getCurrentBuffer: (this: Parser) => Buffer;
  readonly incoming: (Pick<IncomingMessage, 'complete'> & { readonly upgrade?: unknown }) | null;
  /** Whether it reads from the connection itself, so that `execute` is not called. */
  readonly _consumed: boolean;
}

const ON_EXECUTE = 5;

/** For `shouldUpgradeCallback`: whether node:http hands a request over with its connection, instead of serving it. */
export function shouldUpgrade(request: IncomingMessage): boolean {
  // Where the rest of the packet cannot be kept, the upgrade is rejected.
  return isWebSocketUpgrade(request) || !parseFollowingBytes(request.socket);
}

export function isWebSocketUpgrade({ method, httpVersion, headers }: IncomingMessage): boolean {
  return method === 'GET' && httpVersion === '1.1' && headers.upgrade?.toLowerCase() === 'websocket';
}

const prepared = new WeakSet<Socket>();

/** @returns false when this Node.js has another parser */
function parseFollowingBytes(socket: Socket & { readonly parser?: Partial<Parser> }): boolean {
  if (prepared.has(socket)) return true;
  const { parser } = socket;
  if (!isKnownParser(parser)) return false;
  prepared.add(socket);
  // For a parser that serves another connection later, this makes no difference.
  if (!Object.hasOwn(parser, 'execute')) parser.execute = createFullExecute(parser.execute);
  const onExecute = parser[ON_EXECUTE];
  parser[ON_EXECUTE] = function (parsed) {
    const rest =
      typeof parsed === 'number' && !isHandedOver(this) ? this.getCurrentBuffer().subarray(parsed) : Buffer.alloc(0);
    const isBroken = rest.length > 0 && this.incoming?.complete !== true;
    onExecute.call(this, isBroken ? createParseError() : parsed);
    if (rest.length > 0 && !isBroken && !socket.destroyed) socket.unshift(rest);
  };
  // A listener for the bytes of a connection makes node:http read them itself, and give them to `execute`.
  const ignore = (): void => undefined;
  socket.on('data', ignore).off('data', ignore);
  return true;
}

function isKnownParser(parser: Partial<Parser> | undefined): parser is Parser {
  const functions = [parser?.execute, parser?.getCurrentBuffer, parser?.[ON_EXECUTE]];
  return functions.every((each) => typeof each === 'function') && parser?._consumed === true;
}

/** Like `execute`, but goes on behind an ignored upgrade, and returns an error in place of one that it does not report. */
function createFullExecute(execute: Parser['execute']): Parser['execute'] {
  return function (this: Parser, bytes) {
    for (let at = 0; ;) {
      const previous = this.incoming?.complete === true ? this.incoming : undefined;
      const parsed = execute.call(this, bytes.subarray(at));
      if (typeof parsed !== 'number') return parsed;
      at += parsed;
      if (at >= bytes.length || isHandedOver(this)) return at;
      // The parser stopped at the end of an ignored upgrade only if that has just ended.
      if (this.incoming?.complete !== true || this.incoming === previous) return createParseError();
    }
  };
}

function isHandedOver({ incoming }: Parser): boolean {
  return incoming?.upgrade === true;
}

function createParseError(): Error {
  return Object.assign(new Error('invalid input after an ignored upgrade'), { code: 'HPE_UNKNOWN' });
}
