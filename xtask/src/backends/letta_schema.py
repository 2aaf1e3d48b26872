"""Makes the tables of a Letta server, whose wheel brings no migrations.

The argument is the database's address as SQLAlchemy spells it.
"""

import asyncio
import sys

import letta.orm  # noqa: F401  knows all tables
from letta.orm.base import Base
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

# What the tables themselves do not say: numbers of messages come from a sequence.
SEQUENCE = (
    "CREATE SEQUENCE IF NOT EXISTS message_seq_id",
    "ALTER TABLE messages ALTER COLUMN sequence_id SET DEFAULT nextval('message_seq_id')",
)


async def make(address):
    engine = create_async_engine(address)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        await connection.run_sync(Base.metadata.create_all)
        for statement in SEQUENCE:
            await connection.execute(text(statement))
    await engine.dispose()


asyncio.run(make(sys.argv[1]))
