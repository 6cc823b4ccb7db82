// The limit of the sockets: `Bun.listen`, lines split, `JSON.parse`, the line back. No checks, no limits, no log.

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("usage: echo SOCKET");

type Peer = { rest: string; unsent: Uint8Array };

const decoder = new TextDecoder();

function send(socket: Bun.Socket<Peer>, bytes: Uint8Array): void {
  const taken = bytes.length === 0 ? 0 : Math.max(0, socket.write(bytes));
  socket.data.unsent = bytes.subarray(taken);
}

Bun.listen<Peer>({
  unix: path,
  socket: {
    open(socket) {
      socket.data = { rest: "", unsent: new Uint8Array(0) };
    },
    data(socket, chunk) {
      const lines = (socket.data.rest + decoder.decode(chunk)).split("\n");
      socket.data.rest = lines.pop() ?? "";
      let reply = "";
      for (const line of lines) {
        const value = JSON.parse(line) as { id: string };
        reply += `${JSON.stringify(value)}\n`;
      }
      send(socket, Buffer.concat([socket.data.unsent, Buffer.from(reply)]));
    },
    drain: (socket) => send(socket, socket.data.unsent),
    end: (socket) => void socket.end(),
  },
});
console.log("ready");
