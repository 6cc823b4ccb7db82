// For drizzle-kit only: `drizzle-kit generate --name x` writes migrations/NNNN_x.sql from the tables.
import { defineConfig } from "drizzle-kit";

export default defineConfig({ dialect: "sqlite", schema: "./src/store/tables.ts", out: "./migrations" });
