/** An authorization server in a process of its own whose client's secret can be replaced: see rotating-server.child.ts. */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import type { SecretMessage, ServerMessage } from './rotating-client.ts';
import { registerSecret } from './secrets.ts';

export interface RotatingServer extends AsyncDisposable {
  readonly url: string;
  /** The secret that it takes now. */
  readonly secret: () => string;
  /** Replaces the secret; the one before is refused when this resolves. @returns the new one */
  rotate(): Promise<string>;
  /** Tokens given so far, and requests refused, by their error. */
  readonly granted: readonly string[];
  readonly refused: readonly string[];
}

export async function startRotatingServer(): Promise<RotatingServer> {
  const child = fork(join(import.meta.dirname, 'rotating-server.child.ts'), {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const granted: string[] = [];
  const refused: string[] = [];
  const listening = Promise.withResolvers<string>();
  let onRotated: () => void = () => undefined;
  child.on('message', (message: ServerMessage) => {
    if (message.kind === 'listening') listening.resolve(message.url);
    if (message.kind === 'rotated') onRotated();
    if (message.kind === 'refused') refused.push(message.error);
    if (message.kind !== 'granted') return;
    registerSecret('an access token', message.token);
    granted.push(message.token);
  });
  child.once('exit', (code) => listening.reject(new Error(`the authorization server ended with ${String(code)}`)));
  let secret = newSecret();
  const send = (): void => void child.send({ secret } satisfies SecretMessage);
  send();
  const url = await listening.promise;
  return {
    url,
    secret: () => secret,
    async rotate() {
      secret = newSecret();
      const taken = new Promise<void>((resolve) => {
        onRotated = resolve;
      });
      send();
      await taken;
      return secret;
    },
    granted,
    refused,
    [Symbol.asyncDispose]: async () => {
      process.off('exit', killAtExit);
      if (child.exitCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** Nothing in it that form-decoding would change: oidc-provider decodes the Basic value. */
export function newSecret(): string {
  const secret = randomBytes(18).toString('hex');
  registerSecret('a client secret', secret);
  return secret;
}
