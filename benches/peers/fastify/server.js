// A durable inbox as one writes it with Fastify and better-sqlite3: check the signature over the raw body, one row
// a request, and the primary key finds the duplicate. The usage is `node server.js DATABASE`.
import { createHmac, timingSafeEqual } from 'node:crypto';
import Database from 'better-sqlite3';
import Fastify from 'fastify';

const secret = process.env.BENCH_SECRET;
const database = new Database(process.argv[2]);
database.pragma('journal_mode = WAL');
database.pragma('synchronous = FULL');
database.exec(`CREATE TABLE IF NOT EXISTS events (
  id TEXT PRIMARY KEY, received_at INTEGER NOT NULL, headers TEXT NOT NULL, body BLOB NOT NULL)`);
const insert = database.prepare('INSERT INTO events VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING');
const stored = database.prepare('SELECT body FROM events WHERE id = ?').pluck();

function isSigned(headers, body) {
  const time = headers['x-timestamp'];
  if (!(Math.abs(Date.now() / 1000 - Number(time)) <= 300)) return false;
  const hmac = createHmac('sha256', secret).update(`${time}.${headers['x-delivery-id']}.`).update(body);
  const wanted = Buffer.from(`v1=${hmac.digest('hex')}`);
  const given = Buffer.from(headers['x-signature'] ?? '');
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

const server = Fastify({ logger: false, bodyLimit: 1024 * 1024 });
server.removeAllContentTypeParsers();
server.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => done(null, body));
server.post('/in/bench', (request, reply) => {
  const { headers, body } = request;
  if (!isSigned(headers, body)) return reply.code(401).send({ error: 'signature' });
  const id = headers['x-delivery-id'];
  if (insert.run(id, Date.now(), JSON.stringify(headers), body).changes === 1) {
    return reply.code(202).send({ outcome: 'stored', id });
  }
  const isSame = stored.get(id).equals(body);
  return reply.code(isSame ? 200 : 409).send({ outcome: isSame ? 'duplicate' : 'conflict', id });
});

// Whoever started it holds its stdin open.
process.stdin.resume().on('end', () => process.exit(0));
await server.listen({ host: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ ready: true, address: `127.0.0.1:${server.server.address().port}`, pid: process.pid }));
