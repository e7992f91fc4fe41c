/** Requests over a few connections, the next one after each response, as fast as they come. */
import { Pool } from 'undici';

const CONNECTIONS = 16;
const BODY = JSON.stringify({ product: 'travel', days: 14 });

/** @throws Error on a status other than 200 */
export async function sendAll(url: string, method: 'GET' | 'POST', calls: number): Promise<void> {
  const pool = new Pool(url, { connections: CONNECTIONS });
  let left = calls;
  const headers = method === 'POST' ? { 'content-type': 'application/json' } : {};
  const sendInTurn = async (): Promise<void> => {
    while (left-- > 0) {
      const { statusCode, body } = await pool.request({
        ...{ path: '/policies/1', method, headers },
        ...(method === 'POST' && { body: BODY }),
      });
      await body.dump();
      if (statusCode !== 200) throw new Error(`the response was ${String(statusCode)}`);
    }
  };
  try {
    await Promise.all(Array.from({ length: CONNECTIONS }, sendInTurn));
  } finally {
    await pool.close();
  }
}
